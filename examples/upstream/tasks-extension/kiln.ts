/**
 * What the kiln fires and remembers, all of it in a folder. Owns `tasks/` and `fired.jsonl`; only looks into `ready/`.
 *
 * 1. A task is on disk before its id is given away.
 * 2. One firing a key: it is looked for and appended within one turn of the event loop.
 * 3. A cancelled task fires nothing; one that has fired can't be cancelled.
 */
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

export interface Firing {
  batch: string;
  glaze: string;
  /** Counted over everything ever fired. */
  number: number;
}

export interface FiringTask {
  taskId: string;
  key: string;
  batch: string;
  glaze: string | null;
  status: 'working' | 'input_required' | 'completed' | 'cancelled';
  createdAt: string;
  lastUpdatedAt: string;
  fired?: Firing;
}

type Line = Firing & { key: string; scrapped?: true };

const LOOK_MS = 50;

export class Kiln {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    for (const name of ['ready', 'tasks']) mkdirSync(join(folder, name), { recursive: true });
  }

  fire(batch: string, key: string, asks: boolean): FiringTask {
    const createdAt = new Date().toISOString();
    const task: FiringTask = {
      taskId: randomUUID(),
      key,
      batch,
      glaze: asks ? null : 'none',
      status: asks ? 'input_required' : 'working',
      createdAt,
      lastUpdatedAt: createdAt,
    };
    this.#keep(task);
    this.#wait(task.taskId);
    return task;
  }

  /** Takes up every task that was under way when the server ended. */
  goOn(): void {
    for (const name of readdirSync(join(this.#folder, 'tasks')))
      if (name.endsWith('.json')) this.#wait(name.slice(0, -'.json'.length));
  }

  task(taskId: string): FiringTask | null {
    const file = this.#fileOf(taskId);
    const isOne = /^[0-9a-f-]{36}$/.test(taskId) && existsSync(file);
    return isOne ? (JSON.parse(readFileSync(file, 'utf8')) as FiringTask) : null;
  }

  glaze(taskId: string, glaze: string): void {
    const task = this.task(taskId);
    if (task?.status === 'input_required') this.#keep({ ...task, glaze, status: 'working' });
  }

  cancel(taskId: string): void {
    const task = this.task(taskId);
    if (task?.status === 'working' || task?.status === 'input_required')
      this.#keep({ ...task, status: 'cancelled' });
  }

  standing(key: string): Firing | null {
    const last = this.#lines().findLast((line) => line.key === key);
    if (!last || last.scrapped) return null;
    const { batch, glaze, number } = last;
    return { batch, glaze, number };
  }

  scrap(key: string): void {
    const standing = this.standing(key);
    if (standing) this.#append({ ...standing, key, scrapped: true });
  }

  #wait(taskId: string): void {
    const task = this.task(taskId);
    if (task?.status !== 'working' && task?.status !== 'input_required') return;
    if (task.status === 'working' && existsSync(join(this.#folder, 'ready', task.batch))) this.#done(task);
    else setTimeout(() => this.#wait(taskId), LOOK_MS);
  }

  #done(task: FiringTask): void {
    let fired = this.standing(task.key);
    if (!fired) {
      const { batch, glaze, key } = task;
      fired = { batch, glaze: glaze ?? 'none', number: this.#lines().filter(wasFired).length + 1 };
      this.#append({ ...fired, key });
    }
    this.#keep({ ...task, status: 'completed', fired });
  }

  #lines(): Line[] {
    const file = join(this.#folder, 'fired.jsonl');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
  }

  #append(line: Line): void {
    appendFileSync(join(this.#folder, 'fired.jsonl'), `${JSON.stringify(line)}\n`);
  }

  #keep(task: FiringTask): void {
    const file = this.#fileOf(task.taskId);
    writeFileSync(`${file}.new`, JSON.stringify({ ...task, lastUpdatedAt: new Date().toISOString() }));
    renameSync(`${file}.new`, file);
  }

  #fileOf(taskId: string): string {
    return join(this.#folder, 'tasks', `${taskId}.json`);
  }
}

const wasFired = ({ scrapped }: Line): boolean => scrapped !== true;
