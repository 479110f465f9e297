import { render } from "preact";
import { App } from "./app.js";
import { Console } from "./control/console.js";
import { Instruments } from "./instruments.js";
import "./styles/index.css";

const instruments = new Instruments();
const console = new Console(instruments);
render(<App console={console} instruments={instruments} />, document.getElementById("app")!);
void console.open();
