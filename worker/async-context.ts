/** OpenTelemetry's context over Node's AsyncLocalStorage: what a handler awaits stays in the span that is active around it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import type { Context, ContextManager } from '@opentelemetry/api';

export class AsyncContext implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<Args extends unknown[], Work extends (...args: Args) => ReturnType<Work>>(
    context: Context,
    work: Work,
    thisArg?: ThisParameterType<Work>,
    ...args: Args
  ): ReturnType<Work> {
    return this.#storage.run(context, () => work.apply(thisArg, args));
  }

  bind<Target>(context: Context, target: Target): Target {
    if (typeof target !== 'function') return target;
    const work = target as unknown as (...args: unknown[]) => unknown;
    return ((...args: unknown[]) => this.#storage.run(context, () => work(...args))) as Target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}
