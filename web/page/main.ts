// The page: binds what the user does to a conversation, and it to the view.
import { Conversation } from "./conversation.js";
import { listProviders } from "./gateway.js";
import { IDLE, type State } from "./state.js";
import { View } from "./view.js";

const conversation: Conversation = new Conversation({
  state: (next) => show(next),
  transcript: () => view.transcript(conversation.transcript.lines),
  questions: () => view.questions(conversation.questions.list),
  level: (side, level) => view.level(side, level),
});

const view: View = new View({
  start: (provider) => void conversation.start(provider, true),
  toggleMicrophone: () => void conversation.toggleMicrophone(),
  stop: () => conversation.stop(),
  hangUp: () => conversation.hangUp(),
  say: (text, provider) => {
    // Typing first starts a conversation too, without asking for a microphone.
    void conversation.start(provider, false);
    conversation.say(text);
  },
  resolve: (token, approved) => conversation.resolve(token, approved),
});

function show(state: State): void {
  view.state(state);
}

show(IDLE);
window.addEventListener("pagehide", () => conversation.hangUp());
const providers = await listProviders();
if (providers !== null) {
  view.providers(providers);
  show(conversation.current);
}
