// A server component, which renders what talks.
import { VoiceError } from "@voicegw/client";
import { Conversation } from "../../conversation";

export default function Page() {
  return (
    <>
      <h1>{new VoiceError("no_browser").message}</h1>
      <Conversation />
    </>
  );
}
