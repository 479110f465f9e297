package setting

// Path is the path of a file or folder that Load does not read. In a configuration file it
// is relative to the file's directory; [Stdout] stays as it is.
type Path string

// Stdout is the Path that means standard output, for settings that accept it.
const Stdout Path = "-"

// File is a file that a setting names. config.Load reads it.
type File struct {
	// Path is the path as given, resolved against the directory of the configuration file if
	// it was given there. It may be empty.
	Path string
	// Data is the file's content.
	Data []byte
}
