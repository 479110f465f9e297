import { render } from "preact";
import { App } from "./app.js";
import { Access } from "./control/access.js";
import { Console } from "./control/console.js";
import { Instruments } from "./instruments.js";
import "./styles/index.css";

const access = new Access();
const instruments = new Instruments(undefined, access.request);
const console = new Console(instruments, access);
render(<App console={console} instruments={instruments} />, document.getElementById("app")!);
void access.enter().then(() => console.open());
