/**
 * The bus of change hints (architecture.md, idea 6): a worker's sink says "task T has an event numbered N", whoever waits
 * for T reads it again. A hint may be lost, repeated or late; nothing depends on one but latency. The one here is within a
 * process; postgres-hints.ts has the one between processes.
 */
export interface Hint {
  seq: number;
  /** The status after that event, where the publisher knows it: saves a read that could change nothing. */
  status?: string;
}

export type HintListener = (hint: Hint) => void;

export interface Hints {
  publish(taskId: string, seq: number, status?: string): void;
  /** Answers the function that unsubscribes. A listener must not throw and must not block. */
  subscribe(taskId: string, listener: HintListener): () => void;
}

/** Memory: one entry for each task that is waited for just now. */
export function createHints(): Hints {
  const listeners = new Map<string, Set<HintListener>>();
  return {
    publish(taskId, seq, status) {
      const hint: Hint = status === undefined ? { seq } : { seq, status };
      for (const listener of [...(listeners.get(taskId) ?? [])]) listener(hint);
    },
    subscribe(taskId, listener) {
      const group = listeners.get(taskId) ?? new Set();
      listeners.set(taskId, group);
      group.add(listener);
      return () => {
        group.delete(listener);
        if (group.size === 0 && listeners.get(taskId) === group) listeners.delete(taskId);
      };
    },
  };
}
