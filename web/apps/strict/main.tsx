// React in strict mode, which mounts everything twice: built for development, as only there it does.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Conversation } from "../conversation";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Conversation />
  </StrictMode>,
);
