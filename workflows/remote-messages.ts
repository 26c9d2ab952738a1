/** What comes in about remote tasks: reports of workflow `remoteTask`, and people's answers to what a remote asks for. */
import { setHandler } from '@temporalio/workflow';
import type { Json, JsonObject } from '../src/task/json.ts';
import { isOver } from '../src/task/phase.ts';
import { openRequests } from '../src/task/remote-state.ts';
import type { TaskState } from '../src/task/state.ts';
import { isKeepable } from '../src/task/text.ts';
import type { Journal } from './journal.ts';
import { answerSignal, answerUpdate, remoteToldSignal } from './messages.ts';
import type { MessageReply } from './messages.ts';
import { fieldsOf, nameOf, replyWith } from './requests.ts';

const ANSWERS_CHARS_MAX = 262_144;

/** Whom it is about: the one task of workflow `action`, or the steps of a procedure. */
export interface RemoteRoute {
  journals(): Journal[];
  state(): TaskState;
  ignore(code: 'not_open' | 'invalid_answer'): void;
}

export function answerRemoteMessages(route: RemoteRoute): void {
  setHandler(remoteToldSignal, ({ operationId, attempt, report }) => {
    const journal = route.journals().find(({ state }) => state.operationId === operationId);
    if (journal !== undefined && !isOver(journal.state))
      journal.append({ type: 'remote_told', data: { attempt, report } });
  });
  setHandler(answerSignal, (message) => void answer(route, message));
  setHandler(answerUpdate, (message) => answer(route, message));
}

/** For a task of its own. */
export function ignoreAnswerOf(journal: Journal): RemoteRoute['ignore'] {
  return (code) => {
    if (!isOver(journal.state))
      journal.append({ type: 'message_ignored', data: { message: 'answer', code } });
  };
}

/** Open keys only; all others are left out (M2.3). Which step asks is part of the key. */
function answer(route: RemoteRoute, message: unknown): MessageReply {
  const { answers, by } = fieldsOf(message);
  if (isOver(route.state())) return replyWith('already_ended', route.state());
  if (!isAnswers(answers)) {
    route.ignore('invalid_answer');
    return replyWith('invalid_answer', route.state());
  }
  let isTaken = false;
  for (const journal of route.journals()) {
    const { phase } = journal.state;
    const given = openRequests(journal.state).filter(({ key }) => Object.hasOwn(answers, key));
    if (phase.kind !== 'remote' || given.length === 0) continue;
    const byRemoteKey = given.map(({ key, remoteKey }): [string, Json] => [remoteKey, answers[key] ?? null]);
    journal.append({
      type: 'remote_answered',
      data: { attempt: phase.attempt, by: nameOf(by), answers: Object.fromEntries(byRemoteKey) },
    });
    isTaken = true;
  }
  if (!isTaken) route.ignore('not_open');
  return replyWith(isTaken ? 'requested' : 'not_open', route.state());
}

function isAnswers(value: unknown): value is JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && isKeepable(value) && JSON.stringify(value).length <= ANSWERS_CHARS_MAX;
}
