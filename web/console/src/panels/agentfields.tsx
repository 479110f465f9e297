// The fields of an agent's form, with their problems.
import type { ComponentChildren } from "preact";
import type { ToolChoice } from "../control/agents.js";
import { BUDGETS, type AgentForm, type AgentLine, type FormProblem } from "../model/agents.js";
import type { Provider } from "../model/providers.js";
import { BUDGET, BUDGET_HINT, FIELD, GROUP, NO_OTHERS, STANDARD, VOICE_OF } from "./words-agents.js";

interface FieldsProps {
  form: AgentForm;
  isNew: boolean;
  problems: readonly FormProblem[];
  agents: readonly AgentLine[];
  tools: readonly ToolChoice[];
  providers: readonly Provider[];
  onChange: (changes: Partial<AgentForm>) => void;
}

export function AgentFields(props: FieldsProps) {
  return (
    <>
      <Who {...props} />
      <Tools {...props} />
      <Speech {...props} />
      <Switches {...props} />
      <Budgets {...props} />
    </>
  );
}

function Who({ form, isNew, problems, onChange }: FieldsProps) {
  return (
    <fieldset>
      <legend>{GROUP.who}</legend>
      {isNew && <Line at="id" value={form.id} problems={problems} onInput={(id) => onChange({ id })} />}
      <Line at="name" value={form.name} problems={problems} onInput={(name) => onChange({ name })} />
      <Line at="description" value={form.description} problems={problems} onInput={(description) => onChange({ description })} />
      <Long at="playbook" rows={10} value={form.playbook} problems={problems} onInput={(playbook) => onChange({ playbook })} />
      <Tick id="agent-enabled" label={FIELD.enabled[0]} checked={form.enabled} onChange={(enabled) => onChange({ enabled })} />
      <Problems at="enabled" problems={problems} />
    </fieldset>
  );
}

function Tools({ form, problems, tools, onChange }: FieldsProps) {
  const unknown = form.tools.filter((id) => !tools.some((tool) => tool.id === id));
  const toggle = (id: string, on: boolean): void => onChange({ tools: on ? [...form.tools, id] : form.tools.filter((other) => other !== id) });
  return (
    <fieldset aria-describedby="agent-tools-problems">
      <legend>{GROUP.tools}</legend>
      <Tick id="agent-all-tools" label={FIELD.allTools[0]} checked={form.allTools} onChange={(allTools) => onChange({ allTools })} />
      {!form.allTools && (
        <div class="agents-ticks">
          {[...tools, ...unknown.map((id) => ({ id, description: "" }))].map(({ id, description }) => (
            <Tick key={id} id={`agent-tool-${id}`} label={id} hint={description} checked={form.tools.includes(id)} onChange={(on) => toggle(id, on)} />
          ))}
        </div>
      )}
      <Problems at="tools" problems={problems} />
    </fieldset>
  );
}

function Speech({ form, problems, providers, onChange }: FieldsProps) {
  const names = [...new Set([...providers.map(({ name }) => name), ...Object.keys(form.voices)])];
  return (
    <fieldset>
      <legend>{GROUP.speech}</legend>
      <Choice at="provider" value={form.provider} choices={[...new Set([...providers.map(({ name }) => name), ...(form.provider === "" ? [] : [form.provider])])]} problems={problems} onPick={(provider) => onChange({ provider })} />
      <Line at="model" value={form.model} problems={problems} onInput={(model) => onChange({ model })} />
      {names.map((name) => {
        const known = providers.find((p) => p.name === name)?.voices ?? [];
        const value = form.voices[name] ?? "";
        const pick = (voice: string): void => onChange({ voices: { ...form.voices, [name]: voice } });
        return <Choice key={name} at={`voices.${name}`} label={VOICE_OF(name)} value={value} choices={value === "" || known.includes(value) ? known : [...known, value]} problems={problems} onPick={pick} />;
      })}
      <Line at="language" value={form.language} problems={problems} onInput={(language) => onChange({ language })} />
      <Long at="greeting" rows={2} value={form.greeting} problems={problems} onInput={(greeting) => onChange({ greeting })} />
    </fieldset>
  );
}

function Switches({ form, problems, agents, onChange }: FieldsProps) {
  const others = agents.filter(({ id }) => id !== form.id);
  const toggle = (id: string, on: boolean): void => onChange({ switchTo: on ? [...form.switchTo, id] : form.switchTo.filter((other) => other !== id) });
  const all = [...others.map(({ id, name }) => ({ id, name })), ...form.switchTo.filter((id) => !others.some((other) => other.id === id)).map((id) => ({ id, name: "" }))];
  return (
    <fieldset>
      <legend>{GROUP.switches}</legend>
      {all.length === 0 && <p class="hint">{NO_OTHERS}</p>}
      <div class="agents-ticks">
        {all.map(({ id, name }) => (
          <Tick key={id} id={`agent-switch-${id}`} label={id} hint={name} checked={form.switchTo.includes(id)} onChange={(on) => toggle(id, on)} />
        ))}
      </div>
      <Problems at="switch_to" problems={problems} />
    </fieldset>
  );
}

function Budgets({ form, problems, onChange }: FieldsProps) {
  return (
    <fieldset>
      <legend>{GROUP.budgets}</legend>
      <p class="hint">{BUDGET_HINT}</p>
      <div class="agents-budgets">
        {BUDGETS.map((key) => (
          <Line key={key} at={`budget.${key}`} label={BUDGET[key]} value={form.budget[key] ?? ""} problems={problems} onInput={(value) => onChange({ budget: { ...form.budget, [key]: value } })} />
        ))}
      </div>
    </fieldset>
  );
}

type Named = Exclude<keyof typeof FIELD, "allTools" | "enabled">;

interface FieldProps {
  at: Named | `budget.${string}` | `voices.${string}`;
  label?: string;
  value: string;
  problems: readonly FormProblem[];
}

/** The label, hint and problems around a field. */
function Around({ at, label, problems, children }: Omit<FieldProps, "value"> & { children: ComponentChildren }) {
  const [name, hint] = Object.hasOwn(FIELD, at) ? FIELD[at as Named] : [label, ""];
  return (
    <div class="setting">
      <label for={idOf(at)}>{name}</label>
      {children}
      {hint !== "" && (
        <span id={`${idOf(at)}-hint`} class="hint">
          {hint}
        </span>
      )}
      <Problems at={at} problems={problems} />
    </div>
  );
}

function idOf(at: string): string {
  return `agent-${at.replaceAll(".", "-")}`;
}

function describedBy(at: string): string {
  return `${idOf(at)}-hint ${idOf(at)}-problems`;
}

function isWrong(at: string, problems: readonly FormProblem[]): boolean {
  return problems.some((p) => p.at === at || p.at.startsWith(`${at}.`));
}

function Line({ onInput, ...props }: FieldProps & { onInput: (value: string) => void }) {
  const { at, value, problems } = props;
  return (
    <Around {...props}>
      <input type="text" id={idOf(at)} value={value} autocomplete="off" aria-invalid={isWrong(at, problems)} aria-describedby={describedBy(at)} onInput={(event) => onInput(event.currentTarget.value)} />
    </Around>
  );
}

function Long({ onInput, rows, ...props }: FieldProps & { rows: number; onInput: (value: string) => void }) {
  const { at, value, problems } = props;
  return (
    <Around {...props}>
      <textarea id={idOf(at)} rows={rows} value={value} aria-invalid={isWrong(at, problems)} aria-describedby={describedBy(at)} onInput={(event) => onInput(event.currentTarget.value)} />
    </Around>
  );
}

function Choice({ choices, onPick, ...props }: FieldProps & { choices: readonly string[]; onPick: (value: string) => void }) {
  const { at, value, problems } = props;
  return (
    <Around {...props}>
      <select id={idOf(at)} aria-invalid={isWrong(at, problems)} aria-describedby={describedBy(at)} onChange={(event) => onPick(event.currentTarget.value)}>
        {["", ...choices].map((choice) => (
          <option key={choice} value={choice} selected={choice === value}>
            {choice === "" ? STANDARD : choice}
          </option>
        ))}
      </select>
    </Around>
  );
}

function Tick({ id, label, hint = "", checked, onChange }: { id: string; label: string; hint?: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <div class="setting check">
      <label>
        <input type="checkbox" id={id} checked={checked} aria-describedby={`${id}-hint`} onChange={(event) => onChange(event.currentTarget.checked)} />
        {label}
      </label>
      <span id={`${id}-hint`} class="hint">
        {hint}
      </span>
    </div>
  );
}

function Problems({ at, problems }: { at: string; problems: readonly FormProblem[] }) {
  return (
    <ul id={`${idOf(at)}-problems`} class="agents-problems">
      {problems
        .filter((p) => p.at === at || (!at.includes(".") && p.at.startsWith(`${at}.`)))
        .map(({ message }) => (
          <li key={message}>{message}</li>
        ))}
    </ul>
  );
}
