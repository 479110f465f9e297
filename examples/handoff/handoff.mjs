const gateway = process.argv[2]; // such as http://127.0.0.1:8080
const key = process.env.VOICEGW_API_KEY;
const headers = { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }) };

// 1. The backend asks for a session.
const response = await fetch(`${gateway}/v1/sessions`, {
  method: 'POST', headers,
  body: JSON.stringify({
    user: 'ada', pending_request: 'When is the robotics lab open?',
    messages: [{ role: 'user', content: 'I like robots.' }, { role: 'assistant', content: 'Then see the lab.' }],
  }),
});
if (!response.ok) {
  throw new Error((await response.json()).error.message);
}
const made = await response.json();

// 2. The client connects; the ticket is in the list of subprotocols.
await new Promise((resolve, reject) => {
  const socket = new WebSocket(made.url, made.subprotocols);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => socket.send(JSON.stringify({ type: 'session.start', input_rate: 16000, output_rate: 24000 }));
  socket.onerror = () => reject(new Error('the connection failed'));
  socket.onclose = () => resolve();
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') {
      return; // the answer in speech: PCM16, mono, 24 kHz
    }
    const message = JSON.parse(data);
    switch (message.type) {
      case 'transcript':
        if (message.final) {
          console.log(`${message.role}: ${message.text}`);
        }
        break;
      case 'audio.end':
        socket.send(JSON.stringify({ type: 'playback', item_id: message.item_id, played_ms: message.audio_ms, done: true }));
        break;
      case 'turn.ended':
        socket.send(JSON.stringify({ type: 'session.end' }));
        break;
      case 'error':
        reject(new Error(message.message));
        break;
      case 'session.ended':
        console.log(`handback: ${message.handback?.summary}`);
        break;
    }
  };
});

// 3. The backend reads what was said.
const talk = await (await fetch(`${gateway}/v1/conversations/${made.conversation_id}`, { headers })).json();
for (const entry of talk.entries) {
  console.log(`${entry.side} ${entry.role}: ${entry.text}`);
}
