// Icons: strokes of one width on a 24-pixel grid. They accompany text or sit in labelled buttons, so screen
// readers skip them.
import type { JSX } from "preact";

/** Creates an icon from its path, as a new element each time: a shared element keeps its first tree in memory. */
function icon(path: string, width = 1.75): () => JSX.Element {
  return () => (
    <svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width={width} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}

export const Mark = icon("M5 10v4M9.7 7v10M14.3 4v16M19 9v6", 2.5);
export const Microphone = icon("M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3ZM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21");
export const MicrophoneOff = icon("M15 8V6a3 3 0 0 0-5.7-1.3M9 9v2a3 3 0 0 0 4.5 2.6M5.5 11a6.5 6.5 0 0 0 10 5.5M18.5 11a6.4 6.4 0 0 1-.6 2.7M12 17.5V21M4 3l16 18");
export const Stop = icon("M8 6h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2Z");
export const HangUp = icon("M3 14.5c5-4.7 13-4.7 18 0l-2.2 2.3-3.6-1.7v-2.6a12 12 0 0 0-6.4 0v2.6l-3.6 1.7L3 14.5Z");
export const Send = icon("M12 19V5M6 11l6-6 6 6");
export const Sliders = icon("M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5");
export const Handset = icon("M5.5 3.5h3.2l1.6 4.2-2 1.6a12 12 0 0 0 6.4 6.4l1.6-2 4.2 1.6v3.2a2 2 0 0 1-2.2 2A17 17 0 0 1 3.5 5.7a2 2 0 0 1 2-2.2Z");
export const Person = icon("M12 4a3.75 3.75 0 1 0 0 7.5A3.75 3.75 0 0 0 12 4ZM4.5 20a7.5 7.5 0 0 1 15 0");
export const Plus = icon("M12 5v14M5 12h14");
export const Close = icon("M6 6l12 12M18 6 6 18");
export const Tool = icon("M14.5 6.5a4 4 0 0 1 5-3l-2.6 2.6 1 1.9 1.9 1 2.7-2.5a4 4 0 0 1-5.5 5L9 19.5A2.5 2.5 0 0 1 4.5 16L12.5 8.5");
export const Check = icon("m5 12.5 4.5 4.5L19 7.5");
export const Cross = icon("M7 7l10 10M17 7 7 17");
export const Alert = icon("M12 8.5v4.5M12 16.5v.1M10.3 4.3 2.9 17.5A2 2 0 0 0 4.6 20.5h14.8a2 2 0 0 0 1.7-3L13.7 4.3a2 2 0 0 0-3.4 0Z");
export const Down = icon("M12 5v13M6.5 12.5 12 18l5.5-5.5");
export const Text = icon("M5 6h14M5 12h14M5 18h8");
export const Gauge = icon("M4 19V9M10 19V5M16 19v-7M22 19H2");
