// Form fields with a label and an optional hint.

interface PickProps<V extends string | number> {
  id: string;
  label: string;
  value: V;
  choices: readonly (readonly [value: V, label: string])[];
  hint?: string | undefined;
  onPick: (value: V) => void;
}

/** A choice from a list. */
export function Pick<V extends string | number>({ id, label, value, choices, hint, onPick }: PickProps<V>) {
  const pick = (index: number): void => {
    const choice = choices[index];
    if (choice !== undefined) {
      onPick(choice[0]);
    }
  };
  return (
    <label class="setting" for={id}>
      <span>{label}</span>
      <select id={id} aria-describedby={`${id}-hint`} onChange={(event) => pick(event.currentTarget.selectedIndex)}>
        {choices.map(([option, text]) => (
          <option key={String(option)} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
      <span id={`${id}-hint`} class="hint">
        {hint}
      </span>
    </label>
  );
}

interface RadiosProps<V extends string> {
  name: string;
  label: string;
  value: V;
  choices: readonly (readonly [value: V, label: string])[];
  onPick: (value: V) => void;
}

/** A choice from a few visible options. */
export function Radios<V extends string>({ name, label, value, choices, onPick }: RadiosProps<V>) {
  return (
    <div class="setting" role="radiogroup" aria-labelledby={`${name}-label`}>
      <span id={`${name}-label`}>{label}</span>
      <div class="radios">
        {choices.map(([option, text]) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onPick(option)} />
            {text}
          </label>
        ))}
      </div>
    </div>
  );
}

interface SliderProps {
  id: string;
  label: string;
  /** From 0 to 1. */
  value: number;
  onSlide: (value: number) => void;
}

/** A value in percent. */
export function Slider({ id, label, value, onSlide }: SliderProps) {
  const percent = Math.round(value * 100);
  return (
    <label class="setting" for={id}>
      <span>{label}</span>
      <input type="range" id={id} min={0} max={100} step={5} value={percent} aria-valuetext={`${percent} %`} onInput={(event) => onSlide(event.currentTarget.valueAsNumber / 100)} />
      <span class="hint" aria-hidden="true">
        {percent} %
      </span>
    </label>
  );
}

interface CheckProps {
  id: string;
  label: string;
  hint: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

/** A checkbox. */
export function Check({ id, label, hint, checked, onChange }: CheckProps) {
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
