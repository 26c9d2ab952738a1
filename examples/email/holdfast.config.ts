import { defineConfig } from '../../src/index.ts';
import { email, unsearchableEmail } from './handlers.ts';

export default defineConfig({ actions: [email, unsearchableEmail] });
