// What `holdfast demo` rehearses: a handler that keeps its promise, and one that does not.
import { defineConfig } from '../../src/index.ts';
import { charge } from '../provider/handlers.ts';
import { carelessCharge } from './careless-charge.ts';

export default defineConfig({ actions: [charge, carelessCharge] });
