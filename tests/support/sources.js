// Imported before package.js: the package from its sources, whose modules can be looked into.
import { which } from './which-package.js';

which.sources = true;
