import type { VoiceError } from "@voicegw/client";

/** A message about a problem, and advice. */
export interface Notice {
  readonly title: string;
  readonly advice: string;
}

/** Uses the texts of the library's errors. */
export function noticeOf(error: VoiceError): Notice {
  return { title: error.message, advice: error.advice };
}
