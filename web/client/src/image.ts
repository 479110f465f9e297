// A still image, made small enough for one message.
import { VoiceError } from "./errors.js";

/** A larger file is not taken: docs/protocol.md. */
const LARGEST = 45_056;
/** Its longer side at first, in pixels: models see no more. */
const SIDE = 1024;
/** How often it is made smaller. */
const TRIES = 8;

/** What can be shown: a file, a video (the picture that is seen now), a canvas, an image. */
export type ImageSource = Blob | HTMLVideoElement | HTMLCanvasElement | HTMLImageElement | ImageBitmap;

/** The image as a JPEG in base64, with sides of 1024 pixels at most; smaller where the file would be too large. */
export async function packed(image: ImageSource): Promise<string> {
  try {
    const bitmap = await createImageBitmap(image);
    const canvas = document.createElement("canvas");
    let scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
    for (let tries = 0; tries < TRIES; tries++, scale *= 0.8) {
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      canvas.getContext("2d")!.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      // A data: address is the same in all browsers, and needs no reader.
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
