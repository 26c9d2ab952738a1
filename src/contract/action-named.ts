/** An action by its name, where actions are configured: client, gateway, worker. */
import { HoldfastError } from './error.ts';
import type { Action } from './implement-action.ts';

const SHOWN_LENGTH_MAX = 64;

/** Throws `unknown_action` for what is not configured here, whatever was given for a name. */
export function actionNamed(actions: ReadonlyMap<string, Action>, name: unknown): Action {
  const action = actions.get(name as string);
  if (action !== undefined) return action;
  const shown =
    typeof name === 'string' ? JSON.stringify(name.slice(0, SHOWN_LENGTH_MAX)) : `of type ${typeof name}`;
  throw new HoldfastError('unknown_action', `No action named ${shown} is configured here.`);
}
