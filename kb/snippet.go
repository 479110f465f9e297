package kb

// SnippetRunes bounds a snippet.
const SnippetRunes = 240
