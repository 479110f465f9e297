import type { VoiceError } from "@voicegw/client";

/** What went wrong and what to do about it, in words. */
export interface Notice {
  readonly title: string;
  readonly advice: string;
}

/** The library's errors come with their sentences. */
export function noticeOf(error: VoiceError): Notice {
  return { title: error.message, advice: error.advice };
}
