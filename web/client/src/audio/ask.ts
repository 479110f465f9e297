import { VoiceError, type VoiceErrorCode } from "../errors.js";
import type { MicrophoneOptions } from "../options.js";

/** Asks the browser for a microphone. Throws a VoiceError whose code says what to do. */
export async function askMicrophone(options: MicrophoneOptions, deviceId: string | undefined): Promise<MediaStream> {
  // Browsers hide mediaDevices from pages that came over plain http.
  if (!globalThis.isSecureContext || navigator.mediaDevices === undefined) {
    throw new VoiceError("microphone_insecure");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        // One channel is what is sent. Devices may give more all the same, at any rate.
        channelCount: 1,
        echoCancellation: options.echoCancellation ?? true,
        noiseSuppression: options.noiseSuppression ?? true,
        autoGainControl: options.autoGainControl ?? true,
        ...(deviceId === undefined ? {} : { deviceId: { exact: deviceId } }),
      },
    });
  } catch (cause) {
    throw new VoiceError(failureOf(cause), undefined, { cause });
  }
}

// Names from the Media Capture and Streams specification, getUserMedia().
function failureOf(cause: unknown): VoiceErrorCode {
  switch (cause instanceof DOMException ? cause.name : "") {
    case "NotAllowedError":
    case "SecurityError":
      return "microphone_denied";
    case "NotFoundError":
    case "OverconstrainedError":
      return "microphone_missing";
    case "NotReadableError":
    case "AbortError":
      return "microphone_busy";
    default:
      return "microphone_failed";
  }
}
