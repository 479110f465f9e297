// Tests the microphone and the speaker, in the settings.
import { useEffect, useState } from "preact/hooks";
import { DeviceTest } from "../control/devicetest.js";
import type { Settings } from "../model/settings.js";
import { Meter } from "../ui/meter.js";
import { DEVICE_TEST, SETUP } from "../words.js";

/** `open`: the settings are visible. During a call the devices are in use. */
export function TestDevices({ settings, open, calling }: { settings: Settings; open: boolean; calling: boolean }) {
  const [test] = useState(() => new DeviceTest());
  const { microphone, echoCancellation, noiseSuppression } = settings;
  useEffect(() => () => test.stop(), [open, calling, microphone, echoCancellation, noiseSuppression]);
  const heard = test.microphone.value;
  const problem = test.problem.value;
  const on = heard === "asking" || heard === "none" || heard === "heard" || heard === "faint" || heard === "silent";
  return (
    <div class="setting device-test" role="group" aria-label={SETUP.test}>
      <div class="device-test-row">
        <button type="button" class="small" disabled={calling} onClick={() => (on ? test.stop() : void test.listen(settings))}>
          {on ? SETUP.testStop : SETUP.testMicrophone}
        </button>
        <button type="button" class="small" disabled={calling || test.speaker.value === "playing"} onClick={() => void test.play(settings)}>
          {SETUP.testSpeaker}
        </button>
      </div>
      {on && <Meter levels={test.levels} side="user" />}
      <p role="status">{calling ? SETUP.testInCall : problem === null ? DEVICE_TEST.microphone[heard as keyof typeof DEVICE_TEST.microphone] : `${problem.message} ${problem.advice}`}</p>
      <p role="status">{DEVICE_TEST.speaker[test.speaker.value]}</p>
    </div>
  );
}
