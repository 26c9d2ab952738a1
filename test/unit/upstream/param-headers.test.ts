import { expect, it } from 'vitest';
import { paramHeaders } from '../../../src/upstream/connection/param-headers.ts';
import type { Json } from '../../../src/task/json.ts';

const schema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' },
    silent: { type: 'string' },
    wrong: { type: 'string', 'x-mcp-header': 'not a name' },
    at: { type: 'object', properties: { zone: { type: 'string', 'x-mcp-header': 'Zone' } } },
  },
};

it('what a tool declares is repeated as headers, at any depth; nothing else is [M8.1]', () => {
  const args = { region: 'eu', count: 3, dry: false, silent: 's', wrong: 'w', at: { zone: 'a' } };
  expect(paramHeaders(schema, args)).toEqual({
    'Mcp-Param-Region': 'eu',
    'Mcp-Param-Count': '3',
    'Mcp-Param-Dry-Run': 'false',
    'Mcp-Param-Zone': 'a',
  });
  expect(paramHeaders(schema, { region: null, at: {} })).toEqual({});
});

it.each<[Json, string]>([
  ['a b', 'a b'],
  ['', '=?base64??='],
  [' led', '=?base64?IGxlZA==?='],
  ['Ünï', '=?base64?w5xuw68=?='],
  ['line\r\nX-Evil: 1', '=?base64?bGluZQ0KWC1FdmlsOiAx?='],
  ['=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
])('%j is carried as %j: a header holds visible ASCII, and no second header', (region, header) => {
  expect(paramHeaders(schema, { region })).toEqual({ 'Mcp-Param-Region': header });
});

it('an argument with the name of what every object has is no header', () => {
  const evil = { type: 'object', properties: { constructor: { type: 'string', 'x-mcp-header': 'C' } } };
  expect(paramHeaders(evil, {})).toEqual({});
});
