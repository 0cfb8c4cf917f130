// The reader's own model: files that are picked or dropped, and read on this device.
import { byId } from './element.js';

/** @param {(files: File[]) => void} open */
export function createOwnModel(open) {
  const input = /** @type {HTMLInputElement} */ (byId('own-files'));
  const target = byId('drop');
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    input.value = ''; // so that the same files may be chosen again
    if (files.length > 0) open(files);
  });
  // Anywhere on the page: a file that misses its target would otherwise replace the page.
  document.addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    target.classList.add('over');
  });
  document.addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) target.classList.remove('over');
  });
  document.addEventListener('drop', async (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    target.classList.remove('over');
    const files = await droppedFiles(event.dataTransfer);
    if (files.length > 0) open(files);
  });
}

/** Files, and those right below folders. @param {DataTransfer} transfer @returns {Promise<File[]>} */
async function droppedFiles(transfer) {
  const loose = [...transfer.files]; // gone after the first wait
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const folders = entries.filter((entry) => entry.isDirectory);
  if (folders.length === 0) return loose;
  const inside = await Promise.all(folders.map((folder) => filesIn(/** @type {FileSystemDirectoryEntry} */ (folder))));
  const names = new Set(folders.map(({ name }) => name));
  return [...loose.filter(({ name }) => !names.has(name)), ...inside.flat()];
}

/** @param {FileSystemDirectoryEntry} folder @returns {Promise<File[]>} */
async function filesIn(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const entries = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break; // the reader gives a hundred at a time
    entries.push(...some);
  }
  const files = /** @type {FileSystemFileEntry[]} */ (entries.filter((entry) => entry.isFile));
  return Promise.all(files.map((file) => new Promise((resolve, reject) => file.file(resolve, reject))));
}
