// A message from the audio thread costs the page more than its contents. So if both worklets run in one
// context, and thus share a global scope, the loudspeaker's level travels with a microphone frame.

/** Takes a level to send; returns false if no frame is sent soon. */
type Taker = (level: number) => boolean;

/** The context's takers, by the session's `pair`. */
export function takers(): Map<number, Taker> {
  const scope = globalThis as { voicegwTakers?: Map<number, Taker> };
  return (scope.voicegwTakers ??= new Map());
}
