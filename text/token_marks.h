/* What begins with a token, as bits. */
#ifndef TDM_TEXT_TOKEN_MARKS_H
#define TDM_TEXT_TOKEN_MARKS_H

#define TDM_MARK_WORD     1 /* a word; else the token continues one */
#define TDM_MARK_SENTENCE 2 /* a sentence: a line of a document */
#define TDM_MARK_DOCUMENT 4 /* a document */
#define TDM_MARK_SECOND   8 /* the second text of a record that is a pair */

#endif
