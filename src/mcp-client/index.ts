/** `holdfast/mcp-client`: tools called over MCP on a flaky network (docs/mcp-client.md). */
export { BACKOFF, backoffDelayMs, createBackoff, seededRandom } from './backoff.ts';
export type { Backoff } from './backoff.ts';
export type { Clock } from '../contract/clock.ts';
export type { ServerAddress } from './link.ts';
export { McpClient, McpUnavailable } from './mcp-client.ts';
export type { CallOptions, McpClientOptions, TaskHandle, TaskOptions, Timeouts } from './mcp-client.ts';
export type { CallError, CallOutcome, TaskReading, ToolResult, UnknownReason } from './outcome.ts';
export { planAfterLoss } from './reconnect-plan.ts';
export type { ReconnectStep, UnderWay } from './reconnect-plan.ts';
export { RETRY_MATRIX, retryVerdict } from './retry-matrix.ts';
export type { RequestFailure, RetryVerdict, Situation } from './retry-matrix.ts';
export { TaskRequestRefused } from './tasks.ts';
export type { Progress } from './tool-call.ts';
export type { PublishedTool, ToolConfiguration } from './tool-terms.ts';
