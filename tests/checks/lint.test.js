import { test } from 'node:test';
import { checks } from '../../tools/lint.js';

for (const [name, check] of Object.entries(checks)) test(name, check);
