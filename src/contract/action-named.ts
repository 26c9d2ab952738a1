/** An action by its name, where actions are configured: client, gateway, worker. */
import { HoldfastError } from './error.ts';
import type { Action } from './implement-action.ts';

/** Actions by name; a map of them is one. */
export interface ActionsByName {
  get(name: string): Action | undefined;
}

/** The given ones, and behind them those that may come and go: tools of other people's servers. */
export function actionsBy(
  actions: readonly Action[],
  more: (name: string) => Action | undefined = () => undefined,
): ActionsByName {
  const known = new Map(actions.map((action) => [action.contract.name, action]));
  return { get: (name) => known.get(name) ?? more(name) };
}

const SHOWN_LENGTH_MAX = 64;

/** Throws `unknown_action` for what is not configured here, whatever was given for a name. */
export function actionNamed(actions: ActionsByName, name: unknown): Action {
  const action = actions.get(name as string);
  if (action !== undefined) return action;
  const shown =
    typeof name === 'string' ? JSON.stringify(name.slice(0, SHOWN_LENGTH_MAX)) : `of type ${typeof name}`;
  throw new HoldfastError('unknown_action', `No action named ${shown} is configured here.`);
}
