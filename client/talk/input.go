package talk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"voicegw/audio"
	"voicegw/protocol"
)

// ReadTicket reads a ticket from one line.
func ReadTicket(r io.Reader) (string, error) {
	line, err := io.ReadAll(io.LimitReader(r, protocol.MaxTicketBytes+2))
	ticket := strings.TrimSpace(string(line))
	switch {
	case err != nil:
		return "", fmt.Errorf("--ticket -: %w", err)
	case ticket == "" || len(ticket) > protocol.MaxTicketBytes || strings.ContainsAny(ticket, " \t\r\n"):
		return "", errors.New("--ticket -: standard input has no ticket")
	}
	return ticket, nil
}

// maxStdin bounds standard input.
const maxStdin = 256 << 20

// ReadClip reads a WAV file, or with - stdin, which may also be raw PCM16 mono at rate Hz.
func ReadClip(name string, stdin io.Reader, rate int) (audio.Clip, error) {
	if name != "-" {
		return audio.ReadFile(name)
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
	switch {
	case err != nil:
		return audio.Clip{}, err
	case len(data) > maxStdin:
		return audio.Clip{}, fmt.Errorf("more than %d bytes", maxStdin)
	case bytes.HasPrefix(data, []byte("RIFF")):
		return audio.NonEmpty(audio.ReadWAV(bytes.NewReader(data)))
	case rate < 4000 || rate > 384000:
		return audio.Clip{}, fmt.Errorf("--rate must be from 4000 to 384000 Hz, not %d", rate)
	case len(data)%audio.BytesPerSample != 0:
		return audio.Clip{}, errors.New("PCM16 needs an even number of bytes; give 16-bit samples, or a WAV file")
	}
	return audio.NonEmpty(audio.Clip{Rate: rate, PCM: data}, nil)
}
