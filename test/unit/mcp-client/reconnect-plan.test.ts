import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { planAfterLoss } from '../../../src/mcp-client/reconnect-plan.ts';
import type { UnderWay } from '../../../src/mcp-client/reconnect-plan.ts';
import { reconnectTable, retryTable } from '../../../src/mcp-client/reference.ts';
import { holds } from '../../support/property.ts';

const taskId = fc.constantFrom('T', 'U', 'V');
const underWay: fc.Arbitrary<UnderWay> = fc.oneof(
  fc.record({
    kind: fc.constant('call' as const),
    effect: fc.constantFrom('safe' as const, 'conditional' as const, 'unsafe' as const),
    canCarryKey: fc.boolean(),
    canBeFound: fc.boolean(),
    taskId: fc.option(taskId),
  }),
  fc.record({ kind: fc.constantFrom('read' as const, 'cancel' as const, 'answer' as const), taskId }),
  fc.constant({ kind: 'tools' as const }),
  fc.record({ kind: fc.constant('watch' as const), taskIds: fc.array(taskId) }),
);

it('restores the whole filter once and then reads each of its tasks; a call is sent again only where it can do no harm [M6.3]', () => {
  holds('mcp-client reconnect plan', underWay, (each) => {
    const steps = planAfterLoss(each);
    if (each.kind === 'watch') {
      const watched = [...new Set(each.taskIds)];
      expect(steps.map((step) => step.do)).toEqual(
        watched.length === 0 ? [] : ['listen', ...watched.map(() => 'read_task')],
      );
      if (watched.length > 0) expect(steps[0]).toEqual({ do: 'listen', taskIds: watched });
      return;
    }
    expect(steps.length).toBeGreaterThan(0);
    if (each.kind !== 'call') return;
    const [step] = steps;
    if (each.taskId !== null) expect(step).toEqual({ do: 'read_task', taskId: each.taskId });
    else if (each.effect === 'safe') expect(step).toEqual({ do: 'call_again', sameKey: false });
    else if (each.effect === 'conditional' && each.canCarryKey)
      expect(step).toEqual({ do: 'call_again', sameKey: true });
    else expect(step).toEqual({ do: each.canBeFound ? 'find_task' : 'report_unknown' });
  });
});

it('docs/mcp-client.md prints the matrix and the plan as the code has them [M6.3]', () => {
  const page = readFileSync(new URL('../../../docs/mcp-client.md', import.meta.url), 'utf8');
  expect(page).toContain(retryTable());
  expect(page).toContain(reconnectTable());
});
