interface AudioSession {
  type: string;
}

/**
 * Tells Safari that the page speaks and listens at once, as a call does (Audio Session API),
 * so that it does not silence the one for the other. What it returns takes that back.
 */
export function claimAudioSession(): () => void {
  const session = (navigator as { audioSession?: AudioSession }).audioSession;
  if (session === undefined) {
    return () => undefined;
  }
  const before = session.type;
  session.type = "play-and-record";
  return () => {
    session.type = before;
  };
}
