/** `holdfast/gateway`: MCP over stdio and Streamable HTTP in front of durable tasks (docs in gateway.ts). */
export { createGateway } from './gateway.ts';
export type { Gateway, GatewayOptions } from './gateway.ts';
export type { GatewayAuth } from './auth/authenticate.ts';
export type { OAuthSettings } from './auth/oauth.ts';
export type { StaticToken } from './auth/static-tokens.ts';
export type { RequestEnd } from './request-life.ts';
export type { Quarantined } from './catalog.ts';
export type { HttpOptions, HttpRoute, HttpServing } from './http/server.ts';
export { DEFAULT_LIMITS } from './limits.ts';
export type { GatewayLimits } from './limits.ts';
export type { GatewayLog } from './log.ts';
export type { StdioOptions, StdioServing } from './stdio.ts';
export { foreignToolOf, toolOf } from './tool-spec.ts';
export type { ToolSpec } from './tool-spec.ts';
