// The worker that draws on the page's canvases.
import { Sheets, type Message } from "./sheets.js";

const sheets = new Sheets((draw) => requestAnimationFrame(draw));
onmessage = ({ data }: MessageEvent<Message[]>) => sheets.take(data);
// It runs: canvases may come.
postMessage(true);
