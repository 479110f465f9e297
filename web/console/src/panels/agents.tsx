// The agents page over the console: a list, and a form for each agent.
import { useEffect, useRef, useState } from "preact/hooks";
import { AgentsControl, type Opened, type ToolChoice } from "../control/agents.js";
import type { Console } from "../control/console.js";
import { documentOf, NEW_AGENT, type AgentLine, type FormProblem } from "../model/agents.js";
import { running } from "../model/voice.js";
import { Sheet } from "../ui/sheet.js";
import { AgentFields } from "./agentfields.js";
import { Handover } from "./handover.js";
import { AGENTS } from "./words-agents.js";
import "./agents.css";

/** Lists and edits the agents. */
export function AgentsPage({ console, open, onClose }: { console: Console; open: boolean; onClose: () => void }) {
  return (
    <Sheet id="agents" title={AGENTS.title} place="wide" open={open} onClose={onClose}>
      {console.access.state.value === "open" ? <Editor console={console} onClose={onClose} /> : <p class="agents-note">{AGENTS.shut}</p>}
    </Sheet>
  );
}

function Editor({ console, onClose }: { console: Console; onClose: () => void }) {
  const [control] = useState(() => new AgentsControl(console.access.request));
  const [agents, setAgents] = useState<readonly AgentLine[] | null>(null);
  const [tools, setTools] = useState<readonly ToolChoice[]>([]);
  const [opened, setOpened] = useState<Opened | null>(null);
  const [lost, setLost] = useState("");
  const look = async (): Promise<void> => {
    setAgents(await control.list());
    await console.lookForOffer();
  };
  useEffect(() => {
    void look();
    void control.tools().then(setTools);
  }, []);
  const show = async (id: string): Promise<void> => {
    const found = await control.open(id);
    setOpened(found);
    setLost(found === null ? AGENTS.gone : "");
  };
  const back = (): void => {
    setOpened(null);
    void look();
  };
  if (opened !== null) {
    const line = agents?.find(({ id }) => id === opened.form.id);
    return <Form key={`${opened.form.id} ${opened.tag}`} {...{ console, control, opened, line, tools, onBack: back, onClose }} agents={agents ?? []} onOpen={(id) => void show(id)} onSaved={() => void look()} />;
  }
  return <List agents={agents} lost={lost} onOpen={(id) => void show(id)} onMake={() => setOpened({ form: NEW_AGENT, tag: "" })} />;
}

function List({ agents, lost, onOpen, onMake }: { agents: readonly AgentLine[] | null; lost: string; onOpen: (id: string) => void; onMake: () => void }) {
  return (
    <div class="agents-list">
      <p class="agents-bar">
        <button type="button" onClick={onMake}>
          {AGENTS.make}
        </button>
        <span role="status">{agents === null ? AGENTS.loading : lost}</span>
      </p>
      <ul>
        {agents?.map((agent) => (
          <li key={agent.id}>
            <button type="button" class="agents-one" onClick={() => onOpen(agent.id)}>
              <strong>{agent.name}</strong>
              <code>{agent.id}</code>
              <span class="agents-source">
                {AGENTS.source[agent.source] ?? agent.source}
                {!agent.enabled && `, ${AGENTS.off}`}
              </span>
              {agent.description !== "" && <span class="agents-about">{agent.description}</span>}
              {agent.problems.length > 0 && (
                <span class="agents-bad">
                  {AGENTS.problems} {agent.problems.join("; ")}
                </span>
              )}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface FormProps {
  console: Console;
  control: AgentsControl;
  opened: Opened;
  line: AgentLine | undefined;
  agents: readonly AgentLine[];
  tools: readonly ToolChoice[];
  onBack: () => void;
  onClose: () => void;
  onOpen: (id: string) => void;
  onSaved: () => void;
}

/** The message below the buttons, and whether two changes conflict. */
interface Said {
  text: string;
  conflict?: boolean;
  trouble?: boolean;
}

function Form({ console, control, opened, line, agents, tools, onBack, onClose, onOpen, onSaved }: FormProps) {
  const [form, setForm] = useState(opened.form);
  const [state, setState] = useState(opened);
  const [problems, setProblems] = useState<readonly FormProblem[]>([]);
  const [said, setSaid] = useState<Said>({ text: "" });
  const [sure, setSure] = useState(false);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  useEffect(() => head.current?.closest("form")?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), [problems]);
  const isNew = state.tag === "";
  const changed = documentOf(form) !== documentOf(state.form);
  const save = async (tag = state.tag): Promise<void> => {
    const outcome = await control.save({ form, tag });
    setProblems(outcome.kind === "wrong" ? outcome.problems : []);
    switch (outcome.kind) {
      case "done":
        setForm(outcome.opened.form);
        setState(outcome.opened);
        setSaid({ text: isNew ? AGENTS.created : AGENTS.saved });
        return onSaved();
      case "wrong":
        return setSaid({ text: AGENTS.wrong(outcome.problems.length) });
      case "conflict":
        return setSaid({ text: isNew ? AGENTS.exists : AGENTS.conflict, conflict: !isNew });
      case "failed":
        return setSaid({ text: outcome.message, trouble: true });
    }
  };
  const overwrite = async (): Promise<void> => {
    const now = await control.open(form.id);
    await save(now?.tag ?? "");
  };
  const remove = async (): Promise<void> => {
    setSure(false);
    const outcome = await control.remove(state);
    if (outcome.kind === "gone") {
      return onBack();
    }
    setSaid({ text: outcome.kind === "failed" ? outcome.message : AGENTS.deleteConflict, trouble: true });
  };
  const talk = (microphone: boolean): void => {
    console.choose({ agent: form.id, provider: "", voice: "" });
    console.startAnew();
    onClose();
    console.talk(microphone);
  };
  const on = running(console.voice.value);
  return (
    <form
      class="agents-form"
      onKeyDown={(event) => {
        // Escape would close the page and discard the changes.
        if (event.key === "Escape" && changed) {
          event.preventDefault();
          setSaid({ text: AGENTS.escape });
        }
      }}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <p class="agents-bar">
        <button type="button" class="link" onClick={onBack}>
          {AGENTS.back}
        </button>
      </p>
      <h3 ref={head} tabIndex={-1}>
        {isNew ? AGENTS.make : state.form.name}
      </h3>
      {line !== undefined && line.problems.length > 0 && (
        <p class="agents-bad">
          {AGENTS.problems} {line.problems.join("; ")}
        </p>
      )}
      <AgentFields form={form} isNew={isNew} problems={problems} agents={agents} tools={tools} providers={console.offer.value?.providers ?? []} onChange={(changes) => setForm({ ...form, ...changes })} />
      <footer class="agents-foot">
        <p class="agents-said" role="status" data-trouble={problems.length > 0 || said.conflict === true || said.trouble === true}>
          {said.text !== "" ? said.text : changed ? AGENTS.unsaved : ""}
        </p>
        {problems.filter(({ at }) => at === "").map(({ message }) => (
          <p key={message} class="agents-bad">
            {message}
          </p>
        ))}
        <div class="agents-buttons">
          <button type="submit" class="primary">
            {isNew ? AGENTS.create : AGENTS.save}
          </button>
          {said.conflict === true && (
            <>
              <button type="button" onClick={() => onOpen(form.id)}>
                {AGENTS.theirs}
              </button>
              <button type="button" onClick={() => void overwrite()}>
                {AGENTS.mine}
              </button>
            </>
          )}
          {!isNew && !on && (
            <>
              <button type="button" disabled={changed} title={changed ? AGENTS.talkUnsaved : AGENTS.talkHint} onClick={() => talk(true)}>
                {AGENTS.talk}
              </button>
              <button type="button" disabled={changed} title={changed ? AGENTS.talkUnsaved : AGENTS.typeHint} onClick={() => talk(false)}>
                {AGENTS.type}
              </button>
            </>
          )}
          {!isNew && !changed && <Handover console={console} agent={state.form.id} label={AGENTS.switchTo} />}
          {!isNew && line?.source === "store" && !sure && (
            <button type="button" class="quiet" onClick={() => setSure(true)}>
              {AGENTS.remove}
            </button>
          )}
          {sure && (
            <span role="group" aria-label={AGENTS.removeSure} class="agents-buttons">
              {AGENTS.removeSure}
              <button type="button" onClick={() => void remove()}>
                {AGENTS.removeYes}
              </button>
              <button type="button" onClick={() => setSure(false)}>
                {AGENTS.removeNo}
              </button>
            </span>
          )}
        </div>
      </footer>
    </form>
  );
}
