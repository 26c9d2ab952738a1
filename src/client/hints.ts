/**
 * The in-process bus of change hints (architecture.md, idea 6): a worker's sink says "task T has an event numbered N",
 * whoever waits for T reads it again. A hint carries no state and may be lost, repeated or late; nothing depends on one
 * but latency.
 */
export type HintListener = (seq: number) => void;

export interface Hints {
  publish(taskId: string, seq: number): void;
  /** Answers the function that unsubscribes. A listener must not throw and must not block. */
  subscribe(taskId: string, listener: HintListener): () => void;
}

/** Memory: one entry for each task that is waited for just now. */
export function createHints(): Hints {
  const listeners = new Map<string, Set<HintListener>>();
  return {
    publish(taskId, seq) {
      for (const listener of [...(listeners.get(taskId) ?? [])]) listener(seq);
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
