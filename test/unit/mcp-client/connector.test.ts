import { expect, test } from 'vitest';
import { createConnector } from '../../../src/mcp-client/connector.ts';
import type { Link } from '../../../src/mcp-client/link.ts';

interface Session extends Link {
  isIdle: boolean;
  closed: number;
}

/** A connector over sessions of 2025-11-25, each open until it is closed. */
function sessions() {
  const opened: Session[] = [];
  const connector = createConnector(() => {
    const link = {
      ...{ era: 'legacy', between: 'session', isOpen: true, isIdle: false, closed: 0 },
      close: () => {
        link.closed += 1;
        return Promise.resolve();
      },
    } as Session;
    opened.push(link);
    return Promise.resolve(link);
  });
  const linked = async () => {
    const met = await connector.link();
    if (met.kind !== 'link') throw new Error(met.message);
    return met.link;
  };
  return { connector, opened, linked, closed: () => opened.map(({ closed }) => closed) };
}

test('[M6.3] a session that is given up is closed when nothing is under way over it, once', async () => {
  const { connector, opened, linked, closed } = sessions();
  connector.suspect(await linked(), false);
  await linked();
  expect(closed()).toEqual([0, 0]); // others still wait for answers over it
  (opened[0] as Session).isIdle = true;
  await linked();
  expect(closed()).toEqual([1, 0]);
  await connector.close();
  expect(closed()).toEqual([1, 1]);
});

test('[M6.3] closing closes every session, those too that were given up', async () => {
  const { connector, linked, closed } = sessions();
  for (let lost = 0; lost < 3; lost += 1) connector.suspect(await linked(), false);
  await linked();
  await connector.close();
  expect(closed()).toEqual([1, 1, 1, 1]);
});

test('[M6.3] closing ends a handshake under way, whose caller is told that the client is closed', async () => {
  const connector = createConnector(
    (closing) =>
      new Promise((_resolve, reject) => {
        closing.addEventListener('abort', () => reject(new Error('cut off')));
      }),
  );
  const waiting = connector.link();
  await connector.close();
  expect(await waiting).toMatchObject({ kind: 'failure', message: 'this client is closed' });
});
