// The worker that draws on the page's canvases.
import { Sheets, type Message } from "./sheets.js";

const sheets = new Sheets((draw) => requestAnimationFrame(draw));
onmessage = ({ data }: MessageEvent<Message[]>) => sheets.take(data);
// Reports that the worker runs and accepts canvases.
postMessage(true);
