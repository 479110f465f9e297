// Starts `voicegw serve` for a test, with the simulator as its provider. scripts/test-clients.sh sets its path.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// startGateway runs a gateway on a free port, with the text of a scenario and more settings. It returns
// {http, key, audit, stop}; audit reads the tool calls so far.
export async function startGateway({ scenario, settings = {}, env = {} }) {
  const program = process.env.VOICEGW;
  if (!program) {
    throw new Error('VOICEGW is not set; run the tests with make test-clients');
  }
  const folder = mkdtempSync(join(tmpdir(), 'voicegw-gateway-'));
  writeFileSync(join(folder, 'scenario.yaml'), scenario);
  // A fast machine starts more sessions than the default limit of one address.
  const sets = Object.entries({ 'sim.use': 'always', 'limits.new_per_second': 1000, ...settings }).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const line = ['serve', '--listen', '127.0.0.1:0', '--data-dir', join(folder, 'data'), '--scenario', join(folder, 'scenario.yaml'), '--log-format', 'json', ...sets];
  const child = spawn(program, line, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve); // it did not start
  });
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  const stop = async () => {
    child.kill('SIGTERM');
    const code = await ended;
    rmSync(folder, { recursive: true });
    if (code !== 0) {
      throw new Error(`the gateway ended with ${code}: ${said}`);
    }
  };
  const address = await new Promise((resolve, reject) => {
    ended.then((code) => reject(new Error(`the gateway ended with ${code}: ${said}`)));
    child.stderr.on('data', () => {
      const found = /"msg":"serving","addr":"([^"]+)"/.exec(said);
      if (found) {
        resolve(found[1]);
      }
    });
  });
  const audit = () => new Promise((resolve, reject) => {
    const reader = spawn(program, ['audit', '--json', '--data-dir', join(folder, 'data')], { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    reader.stdout.on('data', (data) => (out += data));
    reader.stderr.on('data', (data) => (err += data));
    reader.once('exit', (code) => {
      if (code !== 0) {
        reject(new Error(`voicegw audit ended with ${code}: ${err}`));
        return;
      }
      resolve(out.trim().split('\n').filter(Boolean).map((l) => JSON.parse(l)));
    });
  });
  // The operators' key: the gateway's own, unless another one is configured.
  const own = join(folder, 'data', 'operators.key');
  const key = existsSync(own) ? readFileSync(own, 'utf8').trim() : undefined;
  return { http: `http://${address}`, key, audit, stop };
}
