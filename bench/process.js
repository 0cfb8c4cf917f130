// A child process that answers commands (serve.js), one at a time.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { kRelaxedFlags } from './node-flags.js';

const kPatience = 300_000; // ms: no command of an honest contestant takes longer

export class Process {
  #child;
  #ended;

  /** @param {URL} file */
  constructor(file) {
    this.#child = fork(file, {
      execArgv: kRelaxedFlags,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let complaints = '';
    this.#child.stderr.setEncoding('utf8').on('data', (text) => {
      complaints = (complaints + text).slice(-2000);
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve({ code, signal, complaints }));
    });
  }

  /** Sends a command and waits for its result; rejects when the child fails at it, ends, or takes too long. */
  async ask(command, args) {
    const answer = once(this.#child, 'message').then(([message]) => message);
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, kPatience, { failure: `no answer to ${command} within ${kPatience / 1000} s` });
    });
    const ended = this.#ended.then(({ code, signal, complaints }) => ({
      failure: `its process ended (${signal ?? code}) ${complaints.trim().split('\n').at(-1)}`,
    }));
    this.#child.send({ command, args });
    const { result, failure } = await Promise.race([answer, ended, late]);
    clearTimeout(timer);
    if (failure !== undefined) throw new Error(failure);
    return result;
  }

  async close() {
    this.#child.kill('SIGKILL'); // libraries keep threads that would outlive a polite end
    await this.#ended;
  }
}
