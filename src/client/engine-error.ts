/** Temporal's errors, as answers. The gRPC codes are the protocol's own numbers. */
import {
  isGrpcCancelledError,
  isGrpcDeadlineError,
  isGrpcServiceError,
  WorkflowFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { HoldfastError } from '../contract/error.ts';

const INVALID_ARGUMENT = 3;

/**
 * The engine, or the worker behind it, did not answer within the deadline. A server that notices first gives the call
 * up as cancelled; so does a caller's own signal.
 */
export function isDeadline(error: unknown): boolean {
  return (
    isGrpcDeadlineError(error) ||
    isGrpcCancelledError(error) ||
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError
  );
}

/** The workflow ended otherwise than by returning. */
export function isWorkflowClosed(error: unknown): boolean {
  return error instanceof WorkflowFailedError;
}

/** What a caller is told of any other failure of the engine. A typed error of ours (decryption) passes through. */
export function engineError(error: unknown): HoldfastError {
  const ours = causes(error).find((cause) => cause instanceof HoldfastError);
  if (ours) return ours;
  const grpc = causes(error).find((cause) => isGrpcServiceError(cause));
  if (grpc?.code === INVALID_ARGUMENT && /search attribute/i.test(grpc.details)) {
    return new HoldfastError(
      'invalid_configuration',
      `Temporal's namespace lacks a search attribute of Holdfast (${grpc.details}). Run \`holdfast migrate\`.`,
      { details: { name: 'search attributes', fix: 'holdfast migrate' }, cause: error },
    );
  }
  const why = grpc ? ` (${grpc.details || `gRPC code ${grpc.code}`})` : '';
  return new HoldfastError(
    'engine_unavailable',
    `Temporal did not answer${why}. The same call is safe to repeat.`,
    {
      cause: error,
    },
  );
}

function causes(error: unknown): Error[] {
  const found: Error[] = [];
  for (let next = error; next instanceof Error && found.length < 10; next = next.cause) found.push(next);
  return found;
}
