/** Whether other people's servers answer, and what of their tools is quarantined and why (M1.1). */
import { createLogger, openUnkeptUpstreams } from '../../worker/index.ts';
import type { Config } from '../../worker/index.ts';
import type { Finding } from './doctor.ts';

export async function examineUpstreams(config: Config): Promise<Finding[]> {
  if (config.upstreams.length === 0) return [];
  const upstreams = await openUnkeptUpstreams(config, createLogger({ level: 'silent' }));
  try {
    return upstreams.servers.map((server): Finding => {
      const check = `upstream ${server.name}`;
      const problems = upstreams.problems.filter((problem) => problem.server === server.name);
      const [first] = problems;
      if (first === undefined)
        return { check, verdict: 'ok', found: `${server.compiled?.tools.length ?? 0} tools`, fix: null };
      const isAway = first.error.code === 'upstream_unavailable';
      const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
      return {
        check,
        verdict: isAway ? 'warning' : 'wrong',
        found: `${first.error.message}${more}`,
        fix: isAway ? 'make it answer; its tasks go on then' : `holdfast upstream check ${server.name}`,
      };
    });
  } finally {
    await upstreams.close();
  }
}
