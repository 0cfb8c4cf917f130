// The file that a worker starts with.
import { serveWorker } from './worker-host.js';

serveWorker();
