import { VoiceError, type VoiceErrorCode } from "../errors.js";
import type { MicrophoneOptions } from "../options.js";

/**
 * Asks the browser for a microphone with the settings of a session, for a test before a call. Throws a
 * VoiceError with the cause and advice. The caller stops the stream's tracks.
 */
export async function askMicrophone(options: MicrophoneOptions, deviceId: string | undefined): Promise<MediaStream> {
  // Browsers hide mediaDevices from pages loaded over plain http.
  if (!globalThis.isSecureContext || navigator.mediaDevices === undefined) {
    throw new VoiceError("insecure_page");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        // A device may deliver more channels anyway, at any sample rate.
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

// Error names from the Media Capture and Streams specification, getUserMedia().
function failureOf(cause: unknown): VoiceErrorCode {
  const { name, message } = cause instanceof DOMException ? cause : { name: "", message: "" };
  switch (name) {
    case "NotAllowedError":
      return excluded() ?? refusal(message);
    case "SecurityError":
      return excluded() ?? (framed() ? "microphone_frame" : "microphone_denied");
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

/** Only Chromium gives the reason for a refusal (media_stream_request.cc, read 2026-11-29). */
function refusal(message: string): VoiceErrorCode {
  if (message === "Permission dismissed") {
    return "microphone_dismissed";
  }
  return message === "Permission denied by system" ? "microphone_system" : "microphone_denied";
}

/** Reports whether the page's Permissions-Policy excludes the microphone. Only Chromium knows. */
function excluded(): VoiceErrorCode | undefined {
  const policy = (document as { featurePolicy?: { allowsFeature(name: string): boolean } }).featurePolicy;
  if (policy?.allowsFeature("microphone") !== false) {
    return undefined;
  }
  return framed() ? "microphone_frame" : "microphone_policy";
}

function framed(): boolean {
  return window.parent !== window;
}
