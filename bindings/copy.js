// The copy of a binary in the code, for bundlers that leave the files behind.
import text from '../dist/attention.baseline.text.js';
import { inflate } from './inflate.js';

export const bytes = () => inflate(text);
