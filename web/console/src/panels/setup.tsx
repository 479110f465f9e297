import type { Device } from "@voicegw/client";
import type { Console } from "../control/console.js";
import { chosen, type Offer, type Provider } from "../model/providers.js";
import { asQuery, INPUT_RATES, OUTPUT_RATES, type Settings } from "../model/settings.js";
import { running } from "../model/voice.js";
import { Check, Pick, Radios, Slider } from "../ui/fields.js";
import { Sheet } from "../ui/sheet.js";
import * as words from "../words.js";
import { CodeForThis } from "./code.js";
import { Handover } from "./handover.js";
import { TestDevices } from "./devicetest.js";
import { CopyButton } from "./json.js";
import { AGENTS } from "./words-agents.js";
import "./setup.css";

/** The settings. */
export function Setup({ console, open, onClose }: { console: Console; open: boolean; onClose: () => void }) {
  return (
    <Sheet id="setup" title={words.SETUP.title} place="side" open={open} onClose={onClose}>
      <form class="setup" onSubmit={(event) => event.preventDefault()}>
        <CallSettings console={console} />
        <DeviceSettings console={console} open={open} />
        <AudioSettings console={console} />
        <PageSettings console={console} />
        <CodeForThis settings={console.settings.value} />
      </form>
    </Sheet>
  );
}

function CallSettings({ console }: { console: Console }) {
  const settings = console.settings.value;
  const offer = console.offer.value;
  const provider = chosen(offer, settings.provider);
  const on = running(console.voice.value);
  return (
    <fieldset>
      <legend>{words.SETUP.call}</legend>
      {on && <p class="when">{words.SETUP.later}</p>}
      <Pick
        id="provider"
        label={words.SETUP.provider}
        value={settings.provider}
        choices={providerChoices(offer)}
        hint={provider?.model}
        onPick={(value) => console.choose({ provider: value, voice: "" })}
      />
      {(offer?.agents.length ?? 0) > 1 && (
        <Pick id="agent" label={words.SETUP.agent} value={settings.agent} choices={[["", words.SETUP.standard], ...plain(offer?.agents ?? [])]} onPick={(agent) => console.choose({ agent })} />
      )}
      <Handover console={console} agent={settings.agent} label={AGENTS.switchNow} />
      <Pick id="voice" label={words.SETUP.voice} value={settings.voice} choices={voiceChoices(provider, settings.voice)} onPick={(voice) => console.choose({ voice })} />
      <Radios
        name="turns"
        label={words.SETUP.turns}
        value={settings.turns}
        choices={[
          ["automatic", words.SETUP.automatic],
          ["pushToTalk", words.SETUP.pushToTalk],
        ]}
        onPick={(turns) => console.choose({ turns })}
      />
      <label class="setting" for="pending">
        <span>{words.SETUP.pending}</span>
        <textarea
          id="pending"
          rows={2}
          maxLength={8000}
          aria-describedby="pending-hint"
          value={settings.pendingRequest}
          onInput={(event) => console.choose({ pendingRequest: event.currentTarget.value })}
        />
        <span id="pending-hint" class="hint">
          {words.SETUP.pendingHint}
        </span>
      </label>
    </fieldset>
  );
}

function DeviceSettings({ console, open }: { console: Console; open: boolean }) {
  const settings = console.settings.value;
  const { microphones, speakers } = console.devices.value;
  const { microphoneLabel } = console.voice.value;
  return (
    <fieldset>
      <legend>{words.SETUP.devices}</legend>
      <p class="when">{words.SETUP.atOnce}</p>
      <Pick
        id="microphone"
        label={words.SETUP.microphone}
        value={settings.microphone}
        choices={deviceChoices(microphones, settings.microphone)}
        hint={microphoneLabel === "" ? (microphones.length === 0 ? words.SETUP.unnamed : undefined) : `${words.SETUP.inUse}: ${microphoneLabel}`}
        onPick={(microphone) => console.choose({ microphone })}
      />
      {speakers.length > 0 && (
        <Pick id="speaker" label={words.SETUP.speaker} value={settings.speaker} choices={deviceChoices(speakers, settings.speaker)} onPick={(speaker) => console.choose({ speaker })} />
      )}
      <Slider id="volume" label={words.SETUP.volume} value={settings.volume} onSlide={(volume) => console.choose({ volume })} />
      <TestDevices settings={settings} open={open} calling={running(console.voice.value)} />
      <Check id="echo" label={words.SETUP.echo} hint={words.SETUP.echoHint} checked={settings.echoCancellation} onChange={(echoCancellation) => console.choose({ echoCancellation })} />
      <Check id="noise" label={words.SETUP.noise} hint={words.SETUP.noiseHint} checked={settings.noiseSuppression} onChange={(noiseSuppression) => console.choose({ noiseSuppression })} />
    </fieldset>
  );
}

function AudioSettings({ console }: { console: Console }) {
  const settings = console.settings.value;
  return (
    <fieldset>
      <legend>{words.SETUP.rates}</legend>
      <p class="when">{words.SETUP.ratesHint}</p>
      <Pick id="input-rate" label={words.SETUP.inputRate} value={settings.inputRate} choices={rates(INPUT_RATES)} onPick={(inputRate) => console.choose({ inputRate })} />
      <Pick id="output-rate" label={words.SETUP.outputRate} value={settings.outputRate} choices={rates(OUTPUT_RATES)} onPick={(outputRate) => console.choose({ outputRate })} />
    </fieldset>
  );
}

function PageSettings({ console }: { console: Console }) {
  const settings = console.settings.value;
  return (
    <fieldset>
      <legend>{words.SETUP.page}</legend>
      <Radios
        name="theme"
        label={words.SETUP.theme}
        value={settings.theme}
        choices={[
          ["system", words.SETUP.system],
          ["light", words.SETUP.light],
          ["dark", words.SETUP.dark],
        ]}
        onPick={(theme) => console.choose({ theme })}
      />
      <Radios
        name="readout"
        label={words.SETUP.readOut}
        value={settings.readOut}
        choices={[
          ["unheard", words.SETUP.unheard],
          ["all", words.SETUP.all],
        ]}
        onPick={(readOut: Settings["readOut"]) => console.choose({ readOut })}
      />
      <Check id="shortcuts" label={words.SETUP.shortcuts} hint={words.SETUP.shortcutsHint} checked={settings.shortcuts} onChange={(shortcuts) => console.choose({ shortcuts })} />
      <LinkToThis settings={settings} />
    </fieldset>
  );
}

/** The page's address with these settings, to share or store. */
function LinkToThis({ settings }: { settings: Settings }) {
  const link = `${location.origin}${location.pathname}${asQuery(settings)}`;
  return (
    <div class="setting">
      <label for="link">{words.SETUP.link}</label>
      <div class="link-row">
        <input id="link" type="text" readOnly value={link} aria-describedby="link-hint" onFocus={(event) => event.currentTarget.select()} />
        <CopyButton what={words.SETUP.link} text={() => link} />
      </div>
      <span id="link-hint" class="hint">
        {words.SETUP.linkHint}
      </span>
    </div>
  );
}

type Choice = readonly [value: string, label: string];

function providerChoices(offer: Offer | null): readonly Choice[] {
  const standard = chosen(offer, "");
  return [["", standard === undefined ? words.SETUP.standard : words.standardIs(standard.name)], ...plain(offer?.providers.map(({ name }) => name) ?? [])];
}

/** The known voices, plus the chosen one, because the list may be incomplete. */
function voiceChoices(provider: Provider | undefined, value: string): readonly Choice[] {
  const voices = provider?.voices ?? [];
  const own = value === "" || voices.includes(value) ? [] : [value];
  const standard = provider?.voice ?? "";
  return [["", standard === "" ? words.SETUP.standard : words.standardIs(standard)], ...plain([...voices, ...own])];
}

function deviceChoices(devices: readonly Device[], value: string): readonly Choice[] {
  const gone: readonly Choice[] = value === "" || devices.some(({ id }) => id === value) ? [] : [[value, words.SETUP.gone]];
  return [["", words.SETUP.browsers], ...devices.map(({ id, label }): Choice => [id, label]), ...gone];
}

function plain(names: readonly string[]): readonly Choice[] {
  return names.map((name) => [name, name]);
}

function rates<R extends number>(all: readonly R[]): readonly (readonly [R, string])[] {
  return all.map((rate) => [rate, words.rate(rate)]);
}
