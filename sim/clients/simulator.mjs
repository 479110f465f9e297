// Starts `voicegw sim` for a test. scripts/test-clients.sh sets the paths of the program and the certificate.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { startGateway } from '../../gateway/clients/gateway.mjs';
import { within } from './mailbox.mjs';

const scenario = join(dirname(fileURLToPath(import.meta.url)), 'scenario.yaml');

// need returns an environment variable that the script sets.
function need(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set; run the tests with make test-clients`);
  }
  return value;
}

// through names a provider: the tests of OpenAI's Realtime clients then use a gateway with it. Empty: the simulator itself.
export const through = process.env.VOICEGW_TEST_THROUGH ?? '';

// startRealtime runs a simulator, if necessary with a gateway in front of it.
export async function startRealtime({ tls = false, args = [] } = {}) {
  if (!through) {
    return startSimulator({ tls, args });
  }
  const settings = { provider: through };
  if (tls) {
    settings['tls.certificates'] = `${need('VOICEGW_TEST_CERT')}=${need('VOICEGW_TEST_KEY')}`;
  }
  const gateway = await startGateway({ scenario: readFileSync(scenario, 'utf8'), settings });
  const host = new URL(gateway.http).host.replace('127.0.0.1', tls ? 'localhost' : '127.0.0.1');
  return { host, http: `${tls ? 'https' : 'http'}://${host}`, ws: `${tls ? 'wss' : 'ws'}://${host}`, key: gateway.key, stop: gateway.stop };
}

// startSimulator runs a simulator on a free port, with the text of a fault script. It returns {host, http, ws, stop}.
export async function startSimulator({ tls = false, faults = '', args = [] } = {}) {
  const program = need('VOICEGW');
  const folder = mkdtempSync(join(tmpdir(), 'voicegw-clients-'));
  const line = ['sim', '--listen', '127.0.0.1:0', '--scenario', scenario, '--log-level', 'warn', ...args];
  if (tls) {
    line.push('--tls-cert', need('VOICEGW_TEST_CERT'), '--tls-key', need('VOICEGW_TEST_KEY'));
  }
  if (faults) {
    writeFileSync(join(folder, 'faults.yaml'), faults);
    line.push('--faults', join(folder, 'faults.yaml'));
  }
  const child = spawn(program, line, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve); // it did not start
  });
  let said = '';
  const stop = async () => {
    child.kill('SIGTERM');
    const code = await within('the simulator ending', (done) => ended.then(done), () => said);
    rmSync(folder, { recursive: true });
    if (code !== 0) {
      throw new Error(`the simulator ended with ${code}: ${said}`);
    }
  };
  const address = await within(
    'the simulator serving',
    (done, fail) => {
      child.once('error', fail);
      child.once('exit', (code) => fail(new Error(`the simulator ended with ${code}: ${said}`)));
      child.stderr.on('data', (data) => (said += data));
      child.stdout.on('data', (data) => {
        said += data;
        const found = /serves on ([\w.:[\]]+:\d+)\./.exec(said);
        if (found) {
          done(found[1]);
        }
      });
    },
    () => said,
  ).catch(async (error) => {
    await stop().catch(() => {}); // the first error is more useful
    throw error;
  });
  const port = address.slice(address.lastIndexOf(':') + 1);
  const host = `${tls ? 'localhost' : '127.0.0.1'}:${port}`;
  return {
    host,
    http: `${tls ? 'https' : 'http'}://${host}`,
    ws: `${tls ? 'wss' : 'ws'}://${host}`,
    stop,
  };
}
