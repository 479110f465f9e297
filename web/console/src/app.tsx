import { useEffect, useRef, useState } from "preact/hooks";
import type { Console } from "./control/console.js";
import { listenToKeys } from "./control/keys.js";
import type { Instruments } from "./instruments.js";
import { AgentsPage } from "./panels/agents.js";
import { Announcer } from "./panels/announcer.js";
import { CallBar } from "./panels/call.js";
import { CallsPage } from "./panels/calls.js";
import { Composer } from "./panels/composer.js";
import { ConversationView, untouched } from "./panels/conversation.js";
import { Help } from "./panels/help.js";
import { InstrumentsPanel } from "./panels/instruments.js";
import { Questions } from "./panels/questions.js";
import { Setup } from "./panels/setup.js";
import { TopBar } from "./panels/topbar.js";
import { View as InsideView } from "./panels/view.js";
import { Views, type View } from "./panels/views.js";
import { Waveform } from "./panels/waveform.js";
import { running } from "./model/voice.js";
import { useMedia } from "./ui/media.js";

/** Wide enough for the conversation and the instruments side by side; see layout.css. */
const WIDE = "(width >= 68.75rem)";

/** The sheet or page over the console. */
type Over = "setup" | "help" | "agents" | "calls" | null;

export function App({ console, instruments }: { console: Console; instruments: Instruments }) {
  const [over, setOver] = useState<Over>(null);
  const [view, setView] = useState<View>("text");
  const inside = useRef(new InsideView());
  const wide = useMedia(WIDE);
  useEffect(() => {
    const question = (): void => document.querySelector<HTMLElement>("#questions .question")?.focus();
    return listenToKeys(console, { help: () => setOver("help"), question });
  }, [console]);
  const { theme } = console.settings.value;
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const { phase } = console.voice.value;
  const on = running(console.voice.value);
  useEffect(() => {
    // In a narrow window, show the lane that the user has just called.
    if (on) {
      setView((before) => (before === "text" ? "voice" : before));
    }
  }, [on]);
  // A sheet reports its closing even if another one has already replaced it.
  const close = (what: Over) => (): void => setOver((now) => (now === what ? null : now));
  return (
    <>
      <div class="page" data-view={view}>
        <TopBar
          console={console}
          inside={view === "instruments"}
          onInside={() => setView(view === "instruments" ? "text" : "instruments")}
          onCalls={() => setOver("calls")}
          onAgents={() => setOver("agents")}
          onSetup={() => setOver("setup")}
          onHelp={() => setOver("help")}
        />
        <Views view={view} questions={console.questions.value.length} onView={setView} />
        {/* A landmark even when only the instruments are visible. */}
        <main class="both">
          <div class="conversation">
            {phase !== "none" && (
              <div class="strip">
                <Waveform instruments={instruments} />
              </div>
            )}
            <ConversationView console={console} />
            <Questions console={console} />
            <div class="docks" data-calling={on}>
              <Composer console={console} />
              {!untouched(console) && <CallBar console={console} onSetup={() => setOver("setup")} />}
            </div>
          </div>
          <div id="inside" class="inside">
            {/* Hidden instruments are not rendered. */}
            {(wide || view === "instruments") && <InstrumentsPanel instruments={instruments} view={inside.current} stats={() => console.stats()} simulator={console.offer.value?.simulator === true} access={console.access} />}
          </div>
        </main>
      </div>
      <Announcer console={console} />
      <Setup console={console} open={over === "setup"} onClose={close("setup")} />
      <AgentsPage console={console} open={over === "agents"} onClose={close("agents")} />
      <CallsPage {...{ console, instruments }} open={over === "calls"} onClose={close("calls")} />
      <Help open={over === "help"} onClose={close("help")} />
    </>
  );
}
