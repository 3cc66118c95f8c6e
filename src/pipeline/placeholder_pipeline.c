/* Keeps the folder's object library non-empty until its first file lands. */
typedef int stki_pipeline_placeholder;
