// Each message of the audio thread costs the page's thread more than what is in it. The loudspeaker's
// level goes along with a frame of the microphone, where both worklets run in one context: they have
// one global scope then.

/** Takes a level along; false where nothing goes to the page soon. */
type Taker = (level: number) => boolean;

/** Those of the context, by the session's `pair`. */
export function takers(): Map<number, Taker> {
  const scope = globalThis as { voicegwTakers?: Map<number, Taker> };
  return (scope.voicegwTakers ??= new Map());
}
