// Converts a still image so that it fits into one message.
import { VoiceError } from "./errors.js";

/** The gateway rejects larger files: docs/protocol.md. */
const LARGEST = 45_056;
/** The initial length of the longer side in pixels; models do not see more. */
const SIDE = 1024;
/** The number of attempts to make it smaller. */
const TRIES = 8;

/** A file, a video's current frame, a canvas or an image. */
export type ImageSource = Blob | HTMLVideoElement | HTMLCanvasElement | HTMLImageElement | ImageBitmap;

/**
 * Encodes the image as a JPEG in base64 with sides of at most 1024 pixels, or fewer if the file would be too
 * large.
 */
export async function packed(image: ImageSource): Promise<string> {
  try {
    const bitmap = await createImageBitmap(image);
    const canvas = document.createElement("canvas");
    let scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
    for (let tries = 0; tries < TRIES; tries++, scale *= 0.8) {
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      canvas.getContext("2d")!.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      // A data: address is the same in all browsers and needs no reader.
      const [head, data] = canvas.toDataURL("image/jpeg", 0.7).split(",") as [string, string];
      if (head.startsWith("data:image/jpeg") && data.length * 0.75 <= LARGEST) {
        return data;
      }
    }
  } catch (cause) {
    throw new VoiceError("image", undefined, { cause });
  }
  throw new VoiceError("image");
}
