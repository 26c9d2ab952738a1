/** Tenant, subject and roles out of a token's claims. A claim is named, or pointed at where it is nested. */
import { HoldfastError } from '../../contract/error.ts';
import { isIdentity } from '../../contract/ids.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Principal } from '../../task/plan.ts';

export interface ClaimNames {
  tenant: string;
  subject: string;
  roles: string;
}

/** Throws `forbidden` naming the claim, never its value, where one is missing or out of bounds; without roles there are none. */
export function principalOfClaims(claims: Readonly<Record<string, unknown>>, names: ClaimNames): Principal {
  const [tenant, subject] = [claimAt(claims, names.tenant), claimAt(claims, names.subject)];
  if (!isIdentity(tenant)) throw unusable(names.tenant, 'the tenant', TEXT);
  if (!isIdentity(subject)) throw unusable(names.subject, 'the subject', TEXT);
  const roles = listOf(claimAt(claims, names.roles));
  if (roles === null || roles.length > LIMITS.rolesMax.value || !roles.every(isIdentity))
    throw unusable(names.roles, 'the roles', `at most ${LIMITS.rolesMax.value} of ${TEXT}`);
  return { tenant, subject, roles };
}

/** Of a claim that may be a list, or words with spaces between them as `scope` is; null for anything else. */
export function listOf(claim: unknown): unknown[] | null {
  if (claim === undefined || claim === null) return [];
  if (typeof claim === 'string') return claim.split(' ').filter((word) => word !== '');
  return Array.isArray(claim) ? claim : null;
}

const TEXT = `1 to ${LIMITS.identityLengthMax.value} characters`;

function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  const path = name.startsWith('/')
    ? name
        .slice(1)
        .split('/')
        .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    : [name];
  return path.reduce<unknown>(
    (value, segment) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, segment)
        ? (value as Record<string, unknown>)[segment]
        : undefined,
    claims,
  );
}

const unusable = (claim: string, what: string, expected: string) =>
  new HoldfastError('forbidden', `The token's claim ${claim} does not give ${what}: ${expected}.`, {
    details: { claim, expected },
  });
