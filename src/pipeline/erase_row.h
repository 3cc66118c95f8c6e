/* erase_row.h: the boxes of random_erasing and cutout, in a row that is made otherwise. */
#ifndef STKI_ERASE_ROW_H
#define STKI_ERASE_ROW_H

#include "plan.h"

/* Erases the box that is drawn for the row, if there is one. */
void stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);

#endif
